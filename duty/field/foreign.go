package field

import "log/slog"

// FromAttr reads an attribute of a foreign record (a library that logs to
// slog). It is kept only if its key is one of ours that a foreigner may use
// and its value fits; an error is kept under any of the usual keys, told as
// Error tells it. The second result is false for everything else. No method
// of the value is called except those that Error calls.
func FromAttr(a slog.Attr) (Field, bool) {
	if a.Value.Kind() == slog.KindAny {
		err, ok := a.Value.Any().(error)
		if ok && (a.Key == "error" || a.Key == "err") {
			return Error(err), true
		}
		return Field{}, false
	}
	key, ok := keyNamed[a.Key]
	if !ok || rules[key].own {
		return Field{}, false
	}
	// A library's text under one of our keys is its own text: a grammar cannot
	// tell a name from a password. Only an address has a form of its own.
	if rules[key].fits != nil {
		if key != keyAddress || a.Value.Kind() != slog.KindString {
			return Field{}, false
		}
		return fitting(key, a.Value.String())
	}
	return fromNumber(key, a.Value)
}

func fromNumber(key Key, v slog.Value) (Field, bool) {
	switch {
	case key == keyExpires && v.Kind() == slog.KindTime:
		return Expires(v.Time()), !v.Time().IsZero()
	case key == keyDuration && v.Kind() == slog.KindDuration:
		return Duration(v.Duration()), true
	case key == keyExpires || key == keyDuration:
		return Field{}, false
	case v.Kind() == slog.KindInt64:
		return number(key, v.Int64()), true
	case v.Kind() == slog.KindUint64:
		f := number(key, v.Uint64())
		return f, !f.IsWithheld()
	}
	return Field{}, false
}

// AddressText says the address that a foreign line spells. The second result
// is false if s is none.
func AddressText(s string) (Field, bool) {
	return fitting(keyAddress, s)
}

// fitting returns a field for s, or false if s is empty or not fit for key.
func fitting(key Key, s string) (Field, bool) {
	f := text(key, s)
	if f.IsZero() || f.IsWithheld() {
		return Field{}, false
	}
	return f, true
}
