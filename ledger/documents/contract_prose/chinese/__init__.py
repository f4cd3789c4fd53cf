"""Chinese: all sentences of a contract, in the words of contracts. `docs/contracts/explain.md` has the terms with their meaning."""
