package history

import (
	"encoding/json"
	"hash/maphash"
	"time"
)

// scanner reads JSON of the plain kind that encoding/json writes most: in ASCII, without
// space between tokens, with whole numbers of up to 18 digits, and, but for what is taken
// raw, without escapes. At anything else, right or wrong, it is lost, and whatever
// it returns from then on means nothing.
type scanner struct {
	text    []byte
	at      int
	failed  bool
	strings stringCache
}

// stringCache are strings read of late, so that most are not made again and again.
type stringCache [1 << 10]string

// stringCacheSeed is of no consequence but for which strings share a place.
var stringCacheSeed = maphash.MakeSeed()

func (w *stringCache) intern(text []byte) string {
	known := &w[maphash.Bytes(stringCacheSeed, text)%uint64(len(w))]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

// reset has the scanner read a text from its beginning.
func (s *scanner) reset(text []byte) { s.text, s.at, s.failed = text, 0, false }

// atEnd reports whether the scanner has come to the end of the text, or of its line,
// and not been lost.
func (s *scanner) atEnd() bool {
	s.accept('\n')
	return !s.failed && s.at == len(s.text)
}

// accept goes past a byte if it is next, and reports whether it was.
func (s *scanner) accept(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.failed = true
	}
}

// open begins an object or array, and reports whether anything is in it.
func (s *scanner) open(begin, end byte) bool {
	s.expect(begin)
	return !s.failed && !s.accept(end)
}

// next reports whether more of an object or array follows what was read of it.
func (s *scanner) next(end byte) bool {
	if s.failed || s.accept(',') {
		return !s.failed
	}
	s.expect(end)
	return false
}

// eachField yields the names of the fields of an object. The value of each is to be read
// before the next.
func (s *scanner) eachField(yield func(name []byte) bool) {
	for more := s.open('{', '}'); more; more = s.next('}') {
		name := s.readQuoted()
		s.expect(':')
		if s.failed || !yield(name) {
			return
		}
	}
}

// eachItem yields the places of the items of an array. Each is to be read before the next.
func (s *scanner) eachItem(yield func(place int) bool) {
	place := 0
	for more := s.open('[', ']'); more; more = s.next(']') {
		if !yield(place) {
			return
		}
		place++
	}
}

// readString reads a string.
func (s *scanner) readString() string { return s.strings.intern(s.readQuoted()) }

// readQuoted reads a string, and returns it where it stands in the text.
func (s *scanner) readQuoted() []byte {
	s.expect('"')
	begun := s.at
	for s.at < len(s.text) && isUnescapedASCII(s.text[s.at]) {
		s.at++
	}
	text := s.text[begun:s.at]
	s.expect('"')
	return text
}

// isUnescapedASCII reports whether a byte stands for itself in a string.
func isUnescapedASCII(c byte) bool { return c >= ' ' && c < 0x80 && c != '"' && c != '\\' }

// readUint reads a whole number that is not negative.
func (s *scanner) readUint() (n int64) {
	begun := s.at
	for ; s.at < len(s.text) && s.text[s.at]-'0' <= 9; s.at++ {
		n = 10*n + int64(s.text[s.at]-'0') // what is too large is given up below
	}
	digits := s.at - begun
	if digits == 0 || digits > 18 || digits > 1 && s.text[begun] == '0' {
		s.failed = true
	}
	return n
}

// readInt reads a whole number.
func (s *scanner) readInt() int64 {
	if s.accept('-') {
		return -s.readUint()
	}
	return s.readUint()
}

// readBool reads a truth value.
func (s *scanner) readBool() bool {
	if s.at < len(s.text) && s.text[s.at] == 't' {
		s.expectLiteral("true")
		return true
	}
	s.expectLiteral("false")
	return false
}

func (s *scanner) expectLiteral(text string) {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		s.failed = true
		return
	}
	s.at += len(text)
}

// readTime reads a time.
func (s *scanner) readTime() (t time.Time) {
	if err := t.UnmarshalText(s.readQuoted()); err != nil {
		s.failed = true
	}
	return t
}

// depthMax is how deep what is taken raw may be nested.
const depthMax = 100

// readRaw reads any value, and returns it as it is written.
func (s *scanner) readRaw() json.RawMessage {
	begun := s.at
	s.skipValue(depthMax)
	return append(json.RawMessage(nil), s.text[begun:s.at]...)
}

// skipValue goes past a value that is nested no deeper than so.
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
