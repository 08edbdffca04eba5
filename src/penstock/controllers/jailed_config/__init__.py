"""The process `sconfigcontroller`: writes the files of one cluster into its jail."""
