package envelope

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file walk single tokens. Those that can meet a
// violation of the grammar return the complement of its offset, which is
// negative.

// at returns the byte at i, or 0, which no token starts with, behind the end.
func at(text []byte, i int) byte {
	if uint(i) < uint(len(text)) {
		return text[i]
	}
	return 0
}

// space returns the index of the first byte from i on that is no whitespace.
func space(text []byte, i int) int {
	for uint(i) < uint(len(text)) && text[i] <= ' ' && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// stringEnd returns the index behind the string whose quote is text[i], and
// whether it holds escapes. Runs of plain bytes are taken eight at a time.
func stringEnd(text []byte, i int) (end int, escaped bool) {
	i++
	for {
		for i+8 <= len(text) {
			if m := special(binary.LittleEndian.Uint64(text[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		switch c := at(text, i); {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			n := escapeLen(text, i)
			if n == 0 {
				return ^i, true
			}
			escaped = true
			i += n
		case c < ' ':
			return ^i, escaped
		default:
			i++
		}
	}
}

// special sets the high bit of each byte of w that is a quote, a backslash or
// a control character. Bytes above the first one set may be set wrongly.
//
// In a byte below 0x80, flipping bit 1 brings the quote, 0x22, down to 0x20
// and leaves the control characters, and no other, below it: one subtraction
// of 0x21 borrows for all of them. Bytes from 0x80 on are masked out.
func special(w uint64) uint64 {
	const ones = 0x0101010101010101
	quoteOrControl := (w ^ ones*0x02) - ones*0x21
	backslash := (w ^ ones*'\\') - ones
	return (quoteOrControl | backslash) &^ w & (ones * 0x80)
}

// escapeLen returns the length of the escape at text[i], 0 when it is none.
func escapeLen(text []byte, i int) int {
	switch at(text, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(text, i+2); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads four hexadecimal digits at i.
func hex4(text []byte, i int) (v rune, ok bool) {
	for range 4 {
		switch c := at(text, i); {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
		i++
	}
	return v, true
}

// scalarEnd returns the index behind the number, true, false or null at i.
func scalarEnd(text []byte, i int) int {
	switch at(text, i) {
	case 't':
		return literalEnd(text, i, "true")
	case 'f':
		return literalEnd(text, i, "false")
	case 'n':
		return literalEnd(text, i, "null")
	}
	return numberEnd(text, i)
}

func literalEnd(text []byte, i int, literal string) int {
	if hasLiteral(text, i, literal) {
		return i + len(literal)
	}
	return ^i
}

// hasLiteral says whether the literal stands at i.
func hasLiteral(text []byte, i int, literal string) bool {
	end := i + len(literal)
	return end <= len(text) && string(text[i:end]) == literal
}

// numberEnd returns the index behind the number at i (RFC 8259 §6). Its size
// is not judged: 1e400 is a number.
func numberEnd(text []byte, i int) int {
	if at(text, i) == '-' {
		i++
	}
	switch c := at(text, i); {
	case c == '0':
		i++
	case '1' <= c && c <= '9':
		i = digitsEnd(text, i)
	default:
		return ^i
	}
	if at(text, i) == '.' {
		end := digitsEnd(text, i+1)
		if end == i+1 {
			return ^end
		}
		i = end
	}
	if at(text, i)|0x20 == 'e' {
		i++
		if c := at(text, i); c == '+' || c == '-' {
			i++
		}
		end := digitsEnd(text, i)
		if end == i {
			return ^end
		}
		i = end
	}
	return i
}

func digitsEnd(text []byte, i int) int {
	for uint(i) < uint(len(text)) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return i
}
