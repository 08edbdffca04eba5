"""Dashboards as Grafana reads them: JSON of its schema, made with grafana-foundation-sdk."""

from __future__ import annotations

from itertools import count
from typing import Final

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.model import Dashboard, Panel, Query, Shape

TAG: Final = "slurm"
"""By which the dashboards find one another."""
_SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHTS: Final = {Shape.NUMBER: 4, Shape.CURVES: 8, Shape.TABLE: 9}

_AnyPanel = stat.Panel | table.Panel | timeseries.Panel


def text(dashboard: Dashboard) -> str:
    """The file of a dashboard."""
    return JSONEncoder(sort_keys=True, indent=2).encode(_board(dashboard)) + "\n"


def _board(dashboard: Dashboard) -> models.Dashboard:
    board = (
        builders.Dashboard(dashboard.title)
        .uid(dashboard.uid)
        .description(dashboard.about)
        .tags([TAG])
        .editable()
        .refresh("1m")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            builders.DashboardLink("Slurm")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(
            builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
        )
        .with_variable(
            builders.QueryVariable("namespace")
            .label("Namespace")
            .datasource(_SOURCE)
            .query(f"label_values({dashboard.namespaces}, namespace)")
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC)
        )
    )
    number = count(1)
    for row in dashboard.rows:
        board.with_row(builders.Row(row.title).id(next(number)))
        for panel in row.panels:
            board.with_panel(_panel(panel).id(next(number)))
    return board.build()


def _panel(panel: Panel) -> _AnyPanel:
    made = _of_shape(panel)
    made.title(panel.title).description(panel.about).datasource(_SOURCE).unit(panel.unit)
    made.height(_HEIGHTS[panel.shape]).span(panel.width)
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        made.with_target(_target(query, letter, panel.shape))
    return made


def _target(query: Query, letter: str, shape: Shape) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.text).ref_id(letter).datasource(_SOURCE)
    made.legend_format(query.legend or "__auto")
    if shape is Shape.TABLE:
        return made.instant().format(PromQueryFormat.TABLE)
    return made.range()


def _of_shape(panel: Panel) -> _AnyPanel:
    match panel.shape:
        case Shape.NUMBER:
            return _number()
        case Shape.TABLE:
            return _table(panel)
        case Shape.CURVES:
            return _curves(panel)


def _number() -> stat.Panel:
    # Which number is bad differs by cluster, so thresholds have no colours.
    plain = builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE)
    return (
        stat.Panel()
        .graph_mode(common.BigValueGraphMode.AREA)
        .color_mode(common.BigValueColorMode.VALUE)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(plain.steps([models.Threshold(value=None, color="text")]))
    )


def _table(panel: Panel) -> table.Panel:
    labels = [label for label, _ in panel.columns]
    return (
        table.Panel()
        .with_transformation(
            models.DataTransformerConfig(
                id_val="filterFieldsByName", options={"include": {"names": labels}}
            )
        )
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize",
                options={
                    "indexByName": {label: number for number, label in enumerate(labels)},
                    "renameByName": dict(panel.columns),
                },
            )
        )
    )


def _curves(panel: Panel) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .fill_opacity(30 if panel.stacked else 8)
        .line_width(1)
        .min(0)
        .show_points(common.VisibilityMode.AUTO)
        .legend(
            common_builders.VizLegendOptions()
            .show_legend(True)
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common_builders.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
    )
    if panel.stacked:
        made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if panel.highest is not None:
        made.max(panel.highest)
    return made
