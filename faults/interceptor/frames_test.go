package interceptor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// frame returns the bytes of a protobuf watch event: its length and then its content.
func frame(event string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(event)))) + event
}

func TestFrames(t *testing.T) {
	tests := []struct {
		name   string
		in     encoding
		stream string
		want   []string
		err    error
	}{
		{"json, none", jsonEncoding, "", nil, io.EOF},
		{"json, one a line", jsonEncoding, "{\"a\":1}\n{\"a\":2}\n", []string{"{\"a\":1}\n", "{\"a\":2}\n"}, io.EOF},
		{"json, nothing between", jsonEncoding, `{}{"a":{}}`, []string{`{}`, `{"a":{}}`}, io.EOF},
		{"json, braces in strings", jsonEncoding, `{"a":"}{\"}\\"}{"b":"{"}`, []string{`{"a":"}{\"}\\"}`, `{"b":"{"}`}, io.EOF},
		{"json, white space around", jsonEncoding, " \r\n{}\t \n ", []string{" \r\n{}\t \n "}, io.EOF},
		{"json, only white space", jsonEncoding, "\n\n", []string{"\n\n"}, io.EOF},
		{"json, cut short", jsonEncoding, `{}{"a":`, []string{`{}`, `{"a":`}, io.ErrUnexpectedEOF},
		{"json, no object", jsonEncoding, `{}[1]`, []string{`{}`}, errNoFrame},
		{"protobuf, none", protobufEncoding, "", nil, io.EOF},
		{"protobuf, two", protobufEncoding, frame("one") + frame("three"), []string{frame("one"), frame("three")}, io.EOF},
		{"protobuf, empty event", protobufEncoding, frame("") + frame("x"), []string{frame(""), frame("x")}, io.EOF},
		{"protobuf, length cut short", protobufEncoding, frame("one") + "\x00\x00", []string{frame("one"), "\x00\x00"}, io.ErrUnexpectedEOF},
		{"protobuf, event missing", protobufEncoding, "\x00\x00\x00\x05", []string{"\x00\x00\x00\x05"}, io.ErrUnexpectedEOF},
		{"protobuf, event cut short", protobufEncoding, frame("three")[:6], []string{frame("three")[:6]}, io.ErrUnexpectedEOF},
		{"protobuf, absurd length", protobufEncoding, "<html>", []string{"<htm"}, errNoFrame},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"with its end": iotest.DataErrReader,
	}
	for _, test := range tests {
		for how, reader := range readers {
			t.Run(test.name+", "+how, func(t *testing.T) {
				got, err := readFrames(test.in, reader(strings.NewReader(test.stream)))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("frames (-want +got):\n%s", diff)
				}
				if !errors.Is(err, test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
			})
		}
	}
}

// readFrames reads the events of a watch stream up to the first error. The last element contains
// the bytes that nextFrame returned together with the error.
func readFrames(in encoding, stream io.Reader) ([]string, error) {
	source := bufio.NewReaderSize(stream, 16)
	var frames []string
	for {
		raw, err := framings[in](source, nil)
		if len(raw) > 0 {
			frames = append(frames, string(raw))
		}
		if err != nil {
			return frames, err
		}
	}
}

// TestJSONFrameDoesNotWaitForNext checks that nextJSON returns an event before further bytes
// arrive.
func TestJSONFrameDoesNotWaitForNext(t *testing.T) {
	read, write := io.Pipe()
	defer write.Close()
	go func() { _, _ = write.Write([]byte(`{"type":"ADDED"}`)) }()
	raw, err := nextJSON(bufio.NewReader(read), nil)
	if string(raw) != `{"type":"ADDED"}` || err != nil {
		t.Errorf("read event %q, error %v; want the complete event", raw, err)
	}
}

// TestFramesKeepEveryByte reads random watch streams that arrive in random chunks. nextFrame
// must return each event separately and must not change, drop or add a byte.
func TestFramesKeepEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom([]encoding{jsonEncoding, protobufEncoding}).Draw(t, "encoding")
		texts := rapid.SliceOfN(rapid.String(), 0, 8).Draw(t, "texts")
		var stream bytes.Buffer
		for _, text := range texts {
			if in == protobufEncoding {
				stream.WriteString(frame(text))
				continue
			}
			fmt.Fprintf(&stream, "{%s:{\"x\":[%s]}}\n", jsonString(text), jsonString(text))
		}
		var source io.Reader = bytes.NewReader(stream.Bytes())
		if rapid.Bool().Draw(t, "byte by byte") {
			source = iotest.OneByteReader(source)
		}
		frames, err := readFrames(in, source)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("error %v at the end of the stream, want EOF", err)
		}
		if got := strings.Join(frames, ""); got != stream.String() {
			t.Fatalf("bytes %q, want %q", got, stream.String())
		}
		events := 0
		for _, f := range frames {
			if strings.TrimSpace(f) != "" || in == protobufEncoding {
				events++
			}
		}
		if events != len(texts) {
			t.Fatalf("%d events, want %d", events, len(texts))
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{}}`+"\n"), true)
	f.Add([]byte(frame("one")+frame("two")), false)
	f.Add([]byte("\xff\xff\xff\xff"), false)
	f.Fuzz(func(t *testing.T, stream []byte, isJSON bool) {
		in := protobufEncoding
		if isJSON {
			in = jsonEncoding
		}
		frames, err := readFrames(in, bytes.NewReader(stream))
		if got := strings.Join(frames, ""); !bytes.HasPrefix(stream, []byte(got)) || (errors.Is(err, io.EOF) && len(got) != len(stream)) {
			t.Errorf("read bytes %q of the stream %q, error %v; want a prefix, or all bytes at EOF", got, stream, err)
		}
	})
}
