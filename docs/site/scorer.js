// Pages that answer a question come before lists of everything, which contain most words.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) =>
    score - (/^(docs\/reference|docs\/compatibility|CHANGELOG)/.test(docname) ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
