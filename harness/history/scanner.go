package history

import (
	"encoding/json"
	"hash/maphash"
	"time"
)

// scanner reads the subset of JSON that encoding/json writes most often. This is ASCII without
// spaces between tokens, with integers of up to 18 digits. Only values that readRaw reads may
// contain escape sequences.
//
// Any other input sets failed. All later results are then invalid, and decodeFast returns
// false.
type scanner struct {
	text    []byte // the JSON text
	at      int    // offset in text of the next byte to read
	failed  bool   // the text has a form that the scanner does not accept
	strings stringCache
}

// stringCache contains recently read strings, so that a repeated string needs no new memory.
// The hash of a string selects the only slot in which it can be.
type stringCache [1 << 10]string

// stringCacheSeed seeds the hash that selects the cache slot of a string.
var stringCacheSeed = maphash.MakeSeed()

// intern returns the text as a string, from the cache if possible. It replaces another
// string in the same slot.
func (w *stringCache) intern(text []byte) string {
	slot := &w[maphash.Bytes(stringCacheSeed, text)%uint64(len(w))]
	if *slot != string(text) {
		*slot = string(text)
	}
	return *slot
}

// reset makes the scanner read another text from its beginning.
func (s *scanner) reset(text []byte) { s.text, s.at, s.failed = text, 0, false }

// atEnd reports whether the scanner has read the whole text, except for a final
// newline, without failure.
func (s *scanner) atEnd() bool {
	s.accept('\n')
	return !s.failed && s.at == len(s.text)
}

// accept skips the next byte if it is c, and reports whether it skipped it.
func (s *scanner) accept(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// expect skips the next byte if it is c. Otherwise it sets failed.
func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.failed = true
	}
}

// open reads the opening bracket of an object or array, and reports whether an element follows.
// If none follows, open also reads the closing bracket.
func (s *scanner) open(begin, end byte) bool {
	s.expect(begin)
	return !s.failed && !s.accept(end)
}

// next reports whether another element of the object or array follows. It reads the comma
// before that element, or the closing bracket.
func (s *scanner) next(end byte) bool {
	if s.failed || s.accept(',') {
		return !s.failed
	}
	s.expect(end)
	return false
}

// eachField yields the name of each field of an object. The caller must read the value of a
// field before it asks for the next name.
func (s *scanner) eachField(yield func(name []byte) bool) {
	for more := s.open('{', '}'); more; more = s.next('}') {
		name := s.readQuoted()
		s.expect(':')
		if s.failed || !yield(name) {
			return
		}
	}
}

// eachItem yields the index of each element of an array. The caller must read an element
// before it asks for the next index.
func (s *scanner) eachItem(yield func(index int) bool) {
	index := 0
	for more := s.open('[', ']'); more; more = s.next(']') {
		if !yield(index) {
			return
		}
		index++
	}
}

// readString reads a string without escape sequences. It returns the cached string if there
// is one.
func (s *scanner) readString() string { return s.strings.intern(s.readQuoted()) }

// readQuoted reads a string without escape sequences. It returns a part of the text without
// copying it.
func (s *scanner) readQuoted() []byte {
	s.expect('"')
	start := s.at
	for s.at < len(s.text) && isUnescapedASCII(s.text[s.at]) {
		s.at++
	}
	text := s.text[start:s.at]
	s.expect('"')
	return text
}

// isUnescapedASCII reports whether a byte in a JSON string is an ASCII character that needs
// no escape sequence.
func isUnescapedASCII(c byte) bool { return c >= ' ' && c < 0x80 && c != '"' && c != '\\' }

// readUint reads an integer without a sign.
func (s *scanner) readUint() (n int64) {
	start := s.at
	for ; s.at < len(s.text) && s.text[s.at]-'0' <= 9; s.at++ {
		n = 10*n + int64(s.text[s.at]-'0') // an overflow is rejected after the loop, by the number of digits
	}
	digits := s.at - start
	if digits == 0 || digits > 18 || digits > 1 && s.text[start] == '0' {
		s.failed = true
	}
	return n
}

// readInt reads an integer.
func (s *scanner) readInt() int64 {
	if s.accept('-') {
		return -s.readUint()
	}
	return s.readUint()
}

// readBool reads true or false.
func (s *scanner) readBool() bool {
	if s.at < len(s.text) && s.text[s.at] == 't' {
		s.expectLiteral("true")
		return true
	}
	s.expectLiteral("false")
	return false
}

// expectLiteral skips the given text. If another text follows, it sets failed.
func (s *scanner) expectLiteral(text string) {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		s.failed = true
		return
	}
	s.at += len(text)
}

// readTime reads a time in RFC 3339.
func (s *scanner) readTime() (t time.Time) {
	if err := t.UnmarshalText(s.readQuoted()); err != nil {
		s.failed = true
	}
	return t
}

// depthMax is the maximum nesting depth of a value that readRaw reads.
const depthMax = 100

// readRaw reads a value of any type and returns a copy of its JSON text.
func (s *scanner) readRaw() json.RawMessage {
	start := s.at
	s.skipValue(depthMax)
	return append(json.RawMessage(nil), s.text[start:s.at]...)
}

// skipValue skips a value of any type. It sets failed if objects and arrays are nested deeper
// than depth.
func (s *scanner) skipValue(depth int) {
	if s.at == len(s.text) || depth == 0 {
		s.failed = true
		return
	}
	switch s.text[s.at] {
	case '{':
		for more := s.open('{', '}'); more; more = s.next('}') {
			s.skipString()
			s.expect(':')
			s.skipValue(depth - 1)
		}
	case '[':
		for more := s.open('[', ']'); more; more = s.next(']') {
			s.skipValue(depth - 1)
		}
	case '"':
		s.skipString()
	case 't', 'f':
		s.readBool()
	case 'n':
		s.expectLiteral("null")
	default:
		s.readInt()
	}
}

// skipString skips a string, which may contain the escape sequences \", \\ and \n. It sets
// failed at any other escape sequence.
func (s *scanner) skipString() {
	s.expect('"')
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case isUnescapedASCII(c):
		case c == '\\' && s.at+1 < len(s.text) && (s.text[s.at+1] == '"' || s.text[s.at+1] == '\\' || s.text[s.at+1] == 'n'):
			s.at++
		default:
			s.expect('"')
			return
		}
	}
	s.failed = true
}
