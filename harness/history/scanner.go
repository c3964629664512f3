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
	text  []byte
	at    int
	lost  bool
	words words
}

// words are strings read of late, so that most are not made again and again.
type words [1 << 10]string

// wordsSeed is of no consequence but for which strings share a place.
var wordsSeed = maphash.MakeSeed()

func (w *words) of(text []byte) string {
	known := &w[maphash.Bytes(wordsSeed, text)%uint64(len(w))]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

// begin has the scanner read a text from its beginning.
func (s *scanner) begin(text []byte) { s.text, s.at, s.lost = text, 0, false }

// ended reports whether the scanner has come to the end of the text, or of its line,
// and not been lost.
func (s *scanner) ended() bool {
	s.take('\n')
	return !s.lost && s.at == len(s.text)
}

// take goes past a byte if it is next, and reports whether it was.
func (s *scanner) take(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) want(c byte) {
	if !s.take(c) {
		s.lost = true
	}
}

// open begins an object or array, and reports whether anything is in it.
func (s *scanner) open(begin, end byte) bool {
	s.want(begin)
	return !s.lost && !s.take(end)
}

// next reports whether more of an object or array follows what was read of it.
func (s *scanner) next(end byte) bool {
	if s.lost || s.take(',') {
		return !s.lost
	}
	s.want(end)
	return false
}

// fields yields the names of the fields of an object. The value of each is to be read
// before the next.
func (s *scanner) fields(yield func(name []byte) bool) {
	for more := s.open('{', '}'); more; more = s.next('}') {
		name := s.quoted()
		s.want(':')
		if s.lost || !yield(name) {
			return
		}
	}
}

// items yields the places of the items of an array. Each is to be read before the next.
func (s *scanner) items(yield func(place int) bool) {
	place := 0
	for more := s.open('[', ']'); more; more = s.next(']') {
		if !yield(place) {
			return
		}
		place++
	}
}

// word reads a string.
func (s *scanner) word() string { return s.words.of(s.quoted()) }

// quoted reads a string, and returns it where it stands in the text.
func (s *scanner) quoted() []byte {
	s.want('"')
	begun := s.at
	for s.at < len(s.text) && isPlain(s.text[s.at]) {
		s.at++
	}
	text := s.text[begun:s.at]
	s.want('"')
	return text
}

// isPlain reports whether a byte stands for itself in a string.
func isPlain(c byte) bool { return c >= ' ' && c < 0x80 && c != '"' && c != '\\' }

// natural reads a whole number that is not negative.
func (s *scanner) natural() (n int64) {
	begun := s.at
	for ; s.at < len(s.text) && s.text[s.at]-'0' <= 9; s.at++ {
		n = 10*n + int64(s.text[s.at]-'0') // what is too large is given up below
	}
	digits := s.at - begun
	if digits == 0 || digits > 18 || digits > 1 && s.text[begun] == '0' {
		s.lost = true
	}
	return n
}

// whole reads a whole number.
func (s *scanner) whole() int64 {
	if s.take('-') {
		return -s.natural()
	}
	return s.natural()
}

// flag reads a truth value.
func (s *scanner) flag() bool {
	if s.at < len(s.text) && s.text[s.at] == 't' {
		s.literal("true")
		return true
	}
	s.literal("false")
	return false
}

func (s *scanner) literal(text string) {
	if len(s.text)-s.at < len(text) || string(s.text[s.at:s.at+len(text)]) != text {
		s.lost = true
		return
	}
	s.at += len(text)
}

// time reads a time.
func (s *scanner) time() (t time.Time) {
	if err := t.UnmarshalText(s.quoted()); err != nil {
		s.lost = true
	}
	return t
}

// depthMax is how deep what is taken raw may be nested.
const depthMax = 100

// raw reads any value, and returns it as it is written.
func (s *scanner) raw() json.RawMessage {
	begun := s.at
	s.skip(depthMax)
	return append(json.RawMessage(nil), s.text[begun:s.at]...)
}

// skip goes past a value that is nested no deeper than so.
func (s *scanner) skip(depth int) {
	if s.at == len(s.text) || depth == 0 {
		s.lost = true
		return
	}
	switch s.text[s.at] {
	case '{':
		for more := s.open('{', '}'); more; more = s.next('}') {
			s.skipString()
			s.want(':')
			s.skip(depth - 1)
		}
	case '[':
		for more := s.open('[', ']'); more; more = s.next(']') {
			s.skip(depth - 1)
		}
	case '"':
		s.skipString()
	case 't', 'f':
		s.flag()
	case 'n':
		s.literal("null")
	default:
		s.whole()
	}
}

func (s *scanner) skipString() {
	s.want('"')
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case isPlain(c):
		case c == '\\' && s.at+1 < len(s.text) && (s.text[s.at+1] == '"' || s.text[s.at+1] == '\\' || s.text[s.at+1] == 'n'):
			s.at++
		default:
			s.want('"')
			return
		}
	}
	s.lost = true
}
