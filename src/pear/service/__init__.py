"""How does a refused person hold the conversation in a browser, and a lender in a system?"""
