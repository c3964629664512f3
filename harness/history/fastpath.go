package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file decodes the most frequent record types, if they have the form that Recorder writes.
// decodeFast needs about half the time of Unmarshal. It knows only the fields in this file;
// Unmarshal decodes lines with other fields. Both decoders return the same records.

// decodeFast decodes a line of a history without reflection. It returns true if the record is
// complete. If it returns false, the line has a form that decodeFast does not know. The caller
// must then decode the line with Unmarshal.
func (r *Record) decodeFast(s *scanner, line []byte) bool {
	s.reset(line)
	for name := range s.eachField {
		switch string(name) {
		case "seq":
			r.Seq = s.readInt()
		case "at":
			r.At = time.Duration(s.readInt())
		case "commit", "truth": // format 1 has the key "truth"
			allocate(&r.Commit).scan(s)
		case "request":
			allocate(&r.Request).scan(s)
		case "response":
			allocate(&r.Response).scan(s)
		case "list":
			allocate(&r.List).scan(s)
		case "delivery":
			allocate(&r.Delivery).scan(s)
		default:
			s.failed = true
		}
	}
	return s.atEnd()
}

// allocate returns the value to which *pointer points. If *pointer is nil, it first sets *pointer
// to a new value. decodeFast uses it for the pointers of a Record, such as Commit.
func allocate[T any](pointer **T) *T {
	if *pointer == nil {
		*pointer = new(T)
	}
	return *pointer
}

// scan reads a commit from the scanner's JSON text into t. It sets s.failed if the JSON has an
// unknown field or form.
func (t *Commit) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "type":
			t.Type = EventType(s.readString())
		case "object":
			t.Object.scan(s)
		default:
			s.failed = true
		}
	}
}

// scan reads a request from the scanner's JSON text into r. It sets s.failed if the JSON has an
// unknown field or form.
func (r *Request) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "id":
			r.ID = uint64(s.readUint())
		case "subject":
			r.Subject = s.readString()
		case "verb":
			r.Verb = s.readString()
		case "resource":
			r.Resource = s.readString()
		case "subresource":
			r.Subresource = s.readString()
		case "namespace":
			r.Namespace = s.readString()
		case "name":
			r.Name = s.readString()
		case "path":
			r.Path = s.readString()
		case "query":
			r.Query = s.readString()
		case "agent":
			r.Agent = s.readString()
		case "object":
			allocate(&r.Object).scan(s)
		case "podSpec":
			r.PodSpec = s.readRaw()
		case "patch":
			r.Patch = s.readRaw()
		case "patchType":
			r.PatchType = s.readString()
		case "preconditionUID":
			r.PreconditionUID = types.UID(s.readString())
		case "bodyDryRun":
			r.BodyDryRun = s.readBool()
		case "bytes":
			r.Bytes = int(s.readInt())
		default:
			s.failed = true
		}
	}
}

// scan reads a response from the scanner's JSON text into r. It sets s.failed if the JSON has an
// unknown field or form.
func (r *Response) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "id":
			r.ID = uint64(s.readUint())
		case "code":
			r.Code = int(s.readInt())
		case "serverCode":
			r.ServerCode = int(s.readInt())
		case "reached":
			r.Reached = s.readBool()
		case "reason":
			r.Reason = s.readString()
		case "cause":
			r.Cause = s.readString()
		case "denied":
			r.Denied = s.readBool()
		case "fault":
			r.Fault = s.readString()
		case "retryAfter":
			*allocate(&r.RetryAfter) = int(s.readInt())
		case "object":
			allocate(&r.Object).scan(s)
		case "bytes":
			r.Bytes = int(s.readInt())
		default:
			s.failed = true
		}
	}
}

// scan reads a list from the scanner's JSON text into l. It sets s.failed if the JSON has an
// unknown field or form.
func (l *List) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "id":
			l.ID = uint64(s.readUint())
		case "subject":
			l.Subject = s.readString()
		case "resource":
			l.Resource = s.readString()
		case "version":
			l.Version = Version(s.readUint())
		case "items":
			scanItems(s, &l.Items, (*Object).scan)
		case "continued":
			l.Continued = s.readBool()
		case "more":
			l.More = s.readBool()
		default:
			s.failed = true
		}
	}
}

// scan reads a delivery from the scanner's JSON text into d. It sets s.failed if the JSON has an
// unknown field or form.
func (d *Delivery) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "id":
			d.ID = uint64(s.readUint())
		case "subject":
			d.Subject = s.readString()
		case "resource":
			d.Resource = s.readString()
		case "type":
			d.Type = EventType(s.readString())
		case "object":
			d.Object.scan(s)
		case "initialEventsEnd":
			d.InitialEventsEnd = s.readBool()
		case "held":
			d.Held = time.Duration(s.readInt())
		case "bytes":
			d.Bytes = int(s.readInt())
		default:
			s.failed = true
		}
	}
}

// scan reads an object from the scanner's JSON text into o. It sets s.failed if the JSON has an
// unknown field or form.
func (o *Object) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "resource":
			o.Resource = s.readString()
		case "namespace":
			o.Namespace = s.readString()
		case "name":
			o.Name = s.readString()
		case "uid":
			o.UID = types.UID(s.readString())
		case "version":
			o.Version = Version(s.readUint())
		case "generateName":
			o.GenerateName = s.readString()
		case "generation":
			o.Generation = s.readInt()
		case "created":
			o.Created = s.readTime()
		case "deleting":
			o.Deleting = s.readTime()
		case "labels":
			scanMap(s, &o.Labels)
		case "annotations":
			scanMap(s, &o.Annotations)
		case "finalizers":
			scanItems(s, &o.Finalizers, func(name *string, s *scanner) { *name = s.readString() })
		case "owners":
			scanItems(s, &o.Owners, (*Owner).scan)
		case "skewed":
			o.Skewed = s.readBool()
		case "body":
			o.Body = s.readRaw()
		default:
			s.failed = true
		}
	}
}

// scan reads an ownerReference from the scanner's JSON text into o. It sets s.failed if the JSON
// has an unknown field or form.
func (o *Owner) scan(s *scanner) {
	for name := range s.eachField {
		switch string(name) {
		case "kind":
			o.Kind = s.readString()
		case "name":
			o.Name = s.readString()
		case "uid":
			o.UID = types.UID(s.readString())
		case "controller":
			o.Controller = s.readBool()
		case "doesNotBlock":
			o.DoesNotBlock = s.readBool()
		default:
			s.failed = true
		}
	}
}

// scanMap reads a JSON object whose values are strings into a map, such as the labels of an
// object. It creates the map if *into is nil.
func scanMap(s *scanner, into *map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	keys := 0
	for name := range s.eachKey {
		key := s.strings.intern(name)
		(*into)[key] = s.readString()
		keys++
	}
	s.failed = s.failed || keys != len(*into) // a key occurs twice
}

// scanItems reads a JSON array into a slice, such as the items of a list. To read an element, it
// calls the argument scan.
//
// The slice must be nil. Otherwise the JSON contains the same field twice, and scanItems sets
// s.failed, because Unmarshal would merge the two arrays.
func scanItems[T any](s *scanner, into *[]T, scan func(*T, *scanner)) {
	if *into != nil {
		s.failed = true
		return
	}
	*into = []T{}
	for index := range s.eachItem {
		*into = append(*into, *new(T))
		scan(&(*into)[index], s)
	}
}
