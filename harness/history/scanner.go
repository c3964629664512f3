package history

import (
	"encoding/json"
	"hash/maphash"
	"time"
)

// scanner reads JSON in the form that encoding/json writes most often. This form is ASCII
// without spaces between tokens, and with integers of up to 18 digits. Only values that readRaw
// reads may contain escape sequences.
//
// JSON in any other form sets failed. All later results of the scanner are then invalid.
type scanner struct {
	text    []byte      // the JSON text
	at      int         // offset in text of the next byte to read
	failed  bool        // true if the text has a form that the scanner does not accept
	strings stringCache // recently read strings
}

// stringCache contains recently read strings, so that a repeated string needs no new memory.
// Each string has one slot in the array, which its hash selects.
type stringCache [1 << 10]string

// stringCacheSeed is the seed of the hash that selects the slot of a string in a stringCache.
var stringCacheSeed = maphash.MakeSeed()

// intern returns a text as a string. If the cache contains an equal string, it returns this
// string. Otherwise it makes a new string and puts it into the cache, in place of another string.
func (w *stringCache) intern(text []byte) string {
	slot := &w[maphash.Bytes(stringCacheSeed, text)%uint64(len(w))]
	if *slot != string(text) {
		*slot = string(text)
	}
	return *slot
}

// reset makes the scanner read another JSON text from the beginning. One scanner can thus read
// many lines.
func (s *scanner) reset(text []byte) { s.text, s.at, s.failed = text, 0, false }

// atEnd reports whether the scanner has read the whole text without failure. It skips a final
// newline.
func (s *scanner) atEnd() bool {
	s.accept('\n')
	return !s.failed && s.at == len(s.text)
}

// accept skips the next byte if it equals the parameter c. The result is true if it skipped the
// byte.
func (s *scanner) accept(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// expect skips the next byte if it equals the parameter c. Any other byte makes the scanner set
// failed.
func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.failed = true
	}
}

// open reads the opening bracket of a JSON object or array, and reports whether an element
// follows. If no element follows, it also reads the closing bracket. The parameters begin and end
// are these two brackets.
func (s *scanner) open(begin, end byte) bool {
	s.expect(begin)
	return !s.failed && !s.accept(end)
}

// next reports whether the object or array has another element. It reads the comma before that
// element. If there is no further element, it reads the closing bracket, which is the argument
// end.
func (s *scanner) next(end byte) bool {
	if s.failed || s.accept(',') {
		return !s.failed
	}
	s.expect(end)
	return false
}

// eachField yields the name of each field of a JSON object. The caller must read the field's
// value before it asks for the next name. A name that occurs twice sets failed.
//
// To find such a name without a map, eachField notes a hash of each name in the bits of a number. The
// names of the fields of each record type have different hashes, as a test requires.
func (s *scanner) eachField(yield func(name []byte) bool) {
	seen := uint64(0)
	for more := s.open('{', '}'); more; more = s.next('}') {
		name := s.readQuoted()
		s.expect(':')
		if s.failed || len(name) == 0 {
			s.failed = true
			return
		}
		bit := uint64(1) << ((len(name) + 5*int(name[0]) + 2*int(name[len(name)-1])) & 63)
		if s.failed = seen&bit != 0; s.failed || !yield(name) {
			return
		}
		seen |= bit
	}
}

// eachKey yields the key of each value of a JSON object. The caller must read the value before it asks
// for the next key. A key may occur twice.
func (s *scanner) eachKey(yield func(key []byte) bool) {
	for more := s.open('{', '}'); more; more = s.next('}') {
		key := s.readQuoted()
		s.expect(':')
		if s.failed || !yield(key) {
			return
		}
	}
}

// eachItem yields the index of each element of a JSON array. The caller must read the element
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

// readString reads a string without escape sequences, and returns its text. Equal strings share
// memory if the cache contains them.
func (s *scanner) readString() string { return s.strings.intern(s.readQuoted()) }

// readQuoted reads a string without escape sequences. The result is a part of the scanner's
// text, not a copy.
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

// readUint reads and returns an integer of up to 18 digits without a sign. Any other text sets
// failed.
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

// readInt reads and returns an integer of up to 18 digits, which may have a minus sign. Any other
// text sets failed.
func (s *scanner) readInt() int64 {
	if s.accept('-') {
		return -s.readUint()
	}
	return s.readUint()
}

// readBool reads and returns true or false. Any other text sets failed.
func (s *scanner) readBool() bool {
	if s.at < len(s.text) && s.text[s.at] == 't' {
		s.expectLiteral("true")
		return true
	}
	s.expectLiteral("false")
	return false
}

// expectLiteral skips the given text, such as "null". If another text follows, it sets failed.
func (s *scanner) expectLiteral(text string) {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		s.failed = true
		return
	}
	s.at += len(text)
}

// readTime reads and returns a time in RFC 3339. Any other text sets failed.
func (s *scanner) readTime() (t time.Time) {
	if err := t.UnmarshalText(s.readQuoted()); err != nil {
		s.failed = true
	}
	return t
}

// depthMax is how deep objects and arrays may be nested in a value that readRaw reads.
const depthMax = 100

// readRaw reads a value of any type and returns a copy of its JSON text.
func (s *scanner) readRaw() json.RawMessage {
	start := s.at
	s.skipValue(depthMax)
	return append(json.RawMessage(nil), s.text[start:s.at]...)
}

// skipValue skips a JSON value of any type. The argument depth is how deep objects and arrays may
// be nested in the value. If they are nested deeper, skipValue sets failed.
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

// skipString skips a string, which may contain the escape sequences \", \\ and \n. Any other
// escape sequence sets failed.
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
