package demo

// Labs are the scenes that follow the story: one for each of the other
// examples.
func Labs() []scene { return nil }
