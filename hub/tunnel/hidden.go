package tunnel

// hidden holds a secret where printing does not find it. fmt calls no method of
// a field that is not exported; it prints what is in it, and follows one pointer
// even where the verb is wrong for it. It follows no second one.
type hidden[T any] struct{ at **T }

func hide[T any](secret T) hidden[T] {
	p := &secret
	return hidden[T]{&p}
}

// get returns the secret, or nil where there is none.
func (h hidden[T]) get() *T {
	if h.at == nil {
		return nil
	}
	return *h.at
}
