package interceptor

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frameBytesMax is the maximum length of a watch event that the interceptor decodes. If an event
// is longer, the interceptor forwards the rest of the stream without decoding it. Real objects
// are much smaller, because etcd accepts requests of at most 1.5 MiB.
const frameBytesMax = 16 << 20

// frameHeaderBytes is the number of bytes that precede each protobuf event in a watch stream.
// They contain the event's length in big-endian order.
const frameHeaderBytes = 4

// errNoFrame means that the next bytes of a watch stream are not a watch event. The interceptor
// then forwards these bytes and the rest of the stream unchanged.
var errNoFrame = errors.New("the bytes in the watch stream of the API server are not a watch event")

// nextFrame is a function that reads the next event of a watch stream. It appends the bytes of the
// event to the argument buffer, and returns the longer slice.
//
// At the end of the stream, it returns the remaining bytes and io.EOF. If the stream ends within
// an event, the error is io.ErrUnexpectedEOF. If the bytes are no valid event, it returns the
// bytes that it has read and errNoFrame.
type nextFrame func(source *bufio.Reader, buffer []byte) ([]byte, error)

// framings maps each encoding to the function that reads the next event from a watch
// stream.
var framings = map[encoding]nextFrame{
	jsonEncoding:     nextJSON,
	protobufEncoding: nextProtobuf,
}

// nextProtobuf reads the next event of a protobuf watch stream. The returned bytes include the
// length that precedes the event.
func nextProtobuf(source *bufio.Reader, buffer []byte) ([]byte, error) {
	start := len(buffer)
	buffer, err := readFull(source, buffer, frameHeaderBytes)
	if err != nil {
		return buffer, err
	}
	length := binary.BigEndian.Uint32(buffer[start:])
	if length > frameBytesMax {
		return buffer, fmt.Errorf("%w: found an event length of %d bytes, expected at most %d", errNoFrame, length, frameBytesMax)
	}
	buffer, err = readFull(source, buffer, int(length))
	if errors.Is(err, io.EOF) { // the stream may end only between events
		err = io.ErrUnexpectedEOF
	}
	return buffer, err
}

// readFull reads n bytes from the stream, appends them to the argument buffer, and returns the
// longer slice. If the stream ends before the first of the n bytes, the error is io.EOF. If the
// stream ends later, the error is io.ErrUnexpectedEOF.
func readFull(source *bufio.Reader, buffer []byte, n int) ([]byte, error) {
	start := len(buffer)
	buffer = append(buffer, make([]byte, n)...)
	read, err := io.ReadFull(source, buffer[start:])
	return buffer[:start+read], err
}

// nextJSON reads the next event of a JSON watch stream. It also reads white space around the
// event that has already arrived. It does not wait for more white space, because waiting would
// delay the event.
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
			return buffer, fmt.Errorf("%w: found a JSON object that is longer than the maximum of %d bytes", errNoFrame, frameBytesMax)
		}
	}
}

// jsonObject finds the end of a JSON object in a watch stream by counting braces outside
// strings. It does not parse the object, because counting is enough to find the end.
type jsonObject struct {
	begun   bool // the first opening brace has been scanned
	depth   int  // number of open braces
	quoted  bool // the scan is inside a string
	escaped bool // the previous byte is a backslash inside a string
}

// ended reports whether the scanned bytes contain the complete object.
func (o *jsonObject) ended() bool { return o.begun && o.depth == 0 }

// scan processes bytes up to the end of the JSON object and of the white space after the object. It
// returns the number of processed bytes. If the bytes end before the object does, the next call of
// scan continues with further data.
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
			return i, fmt.Errorf("%w: expected a JSON object, which begins with {, found %q", errNoFrame, c)
		case c == '"':
			o.quoted = true
		case c == '}':
			o.depth--
		}
	}
	return len(data), nil
}
