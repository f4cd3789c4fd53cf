"""English: all sentences of a contract, plain and short. Names stand in quotation marks, numbers are as the file writes them."""
