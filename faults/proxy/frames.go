package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frameBytesMax bounds one watch event. The API server's objects stay well
// under it (etcd takes 1.5 MiB, a request 3 MiB).
const frameBytesMax = 16 << 20

// frameHeaderBytes is the length, big endian, before each event in protobuf.
const frameHeaderBytes = 4

// errNoFrame means that a stream does not consist of frames, or no longer does.
var errNoFrame = errors.New("not a frame")

// nextFrame appends the next event of a stream to buffer, exactly as it was
// received. At the end of the stream it returns io.EOF and whatever bytes were
// left; bytes that it cannot make out come with errNoFrame.
type nextFrame func(source *bufio.Reader, buffer []byte) ([]byte, error)

// framings tells how the events of a stream are set apart.
var framings = map[encoding]nextFrame{
	jsonEncoding:     nextJSON,
	protobufEncoding: nextProtobuf,
}

// nextProtobuf reads an event with its length.
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
	if errors.Is(err, io.EOF) { // only before the length is it a proper end
		err = io.ErrUnexpectedEOF
	}
	return buffer, err
}

// readFull appends n bytes. The error is io.EOF only if there were none.
func readFull(source *bufio.Reader, buffer []byte, n int) ([]byte, error) {
	start := len(buffer)
	buffer = append(buffer, make([]byte, n)...)
	read, err := io.ReadFull(source, buffer[start:])
	return buffer[:start+read], err
}

// nextJSON reads an object and the white space around it, as far as that has
// arrived: waiting for more of it would hold the object back.
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
		_, _ = source.Discard(used) // it is buffered
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

// jsonObject finds the end of a JSON object by its braces.
type jsonObject struct {
	begun   bool
	depth   int
	quoted  bool // inside a string
	escaped bool // behind a backslash in it
}

func (o *jsonObject) ended() bool { return o.begun && o.depth == 0 }

// scan takes bytes up to the end of the object and the white space behind it,
// and says how many it took.
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
