package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frameBytesMax limits one watch event. Objects are far smaller: etcd accepts 1.5 MiB, a
// request 3 MiB.
const frameBytesMax = 16 << 20

// frameHeaderBytes is the size of the big-endian length that precedes each protobuf event.
const frameHeaderBytes = 4

// errNoFrame means that a stream contains bytes that are not a valid frame. The proxy
// forwards these bytes unchanged.
var errNoFrame = errors.New("not a frame")

// nextFrame appends the next event of a stream to buffer, byte for byte. At the end of the
// stream it returns io.EOF with the remaining bytes. It returns errNoFrame with the bytes
// that it cannot parse.
type nextFrame func(source *bufio.Reader, buffer []byte) ([]byte, error)

// framings maps each encoding to the function that splits a stream of that encoding
// into events.
var framings = map[encoding]nextFrame{
	jsonEncoding:     nextJSON,
	protobufEncoding: nextProtobuf,
}

// nextProtobuf reads an event that is preceded by its length.
func nextProtobuf(source *bufio.Reader, buffer []byte) ([]byte, error) {
	start := len(buffer)
	buffer, err := readFull(source, buffer, frameHeaderBytes)
	if err != nil {
		return buffer, err
	}
	length := binary.BigEndian.Uint32(buffer[start:])
	if length > frameBytesMax {
		return buffer, fmt.Errorf("%w: an event of %d bytes", errNoFrame, length)
	}
	buffer, err = readFull(source, buffer, int(length))
	if errors.Is(err, io.EOF) { // the stream may end only between events
		err = io.ErrUnexpectedEOF
	}
	return buffer, err
}

// readFull appends n bytes from the stream to the buffer. The error is io.EOF only if
// the stream ended before the first byte.
func readFull(source *bufio.Reader, buffer []byte, n int) ([]byte, error) {
	start := len(buffer)
	buffer = append(buffer, make([]byte, n)...)
	read, err := io.ReadFull(source, buffer[start:])
	return buffer[:start+read], err
}

// nextJSON reads a JSON object and the white space around it that has already arrived. It
// does not wait for more white space, because that would delay the object.
func nextJSON(source *bufio.Reader, buffer []byte) ([]byte, error) {
	var object jsonObject
	start := len(buffer)
	for {
		if _, err := source.Peek(1); err != nil {
			if err == io.EOF && object.begun {
				err = io.ErrUnexpectedEOF
			}
			return buffer, err
		}
		arrived, _ := source.Peek(source.Buffered())
		used, err := object.scan(arrived)
		buffer = append(buffer, arrived[:used]...)
		_, _ = source.Discard(used) // these bytes are buffered
		switch {
		case err != nil:
			return buffer, err
		case object.ended():
			return buffer, nil
		case len(buffer)-start > frameBytesMax:
			return buffer, fmt.Errorf("%w: an event of more than %d bytes", errNoFrame, frameBytesMax)
		}
	}
}

// jsonObject finds the end of a JSON object by counting braces, so that the object
// need not be parsed twice.
type jsonObject struct {
	begun   bool
	depth   int
	quoted  bool // inside a string
	escaped bool // after a backslash in a string
}

func (o *jsonObject) ended() bool { return o.begun && o.depth == 0 }

// scan consumes bytes up to the end of the object and of the white space after it. It
// returns the number of bytes consumed.
func (o *jsonObject) scan(data []byte) (int, error) {
	for i, c := range data {
		switch {
		case o.escaped:
			o.escaped = false
		case o.quoted:
			o.escaped = c == '\\'
			o.quoted = c != '"'
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
		case o.ended():
			return i, nil
		case c == '{':
			o.begun = true
			o.depth++
		case !o.begun:
			return i, fmt.Errorf("%w: expected an object, found %q", errNoFrame, c)
		case c == '"':
			o.quoted = true
		case c == '}':
			o.depth--
		}
	}
	return len(data), nil
}
