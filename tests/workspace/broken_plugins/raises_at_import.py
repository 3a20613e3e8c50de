raise ValueError("the licence server does not answer")
