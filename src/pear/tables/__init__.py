"""Who is in this table?"""
