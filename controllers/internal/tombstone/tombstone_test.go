package tombstone

import (
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func TestLastKnown(t *testing.T) {
	for name, test := range map[string]struct {
		object any
		want   int
		ok     bool
	}{
		"the object":                  {7, 7, true},
		"tombstone":                   {cache.DeletedFinalStateUnknown{Key: "k", Obj: 7}, 7, true},
		"other type":                  {"7", 0, false},
		"tombstone with another type": {cache.DeletedFinalStateUnknown{Key: "k", Obj: "7"}, 0, false},
		"empty tombstone":             {cache.DeletedFinalStateUnknown{Key: "k"}, 0, false},
		"nothing":                     {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := LastKnown[int](klog.Background(), test.object); got != test.want || ok != test.ok {
				t.Errorf("LastKnown = %d, %t; want %d, %t", got, ok, test.want, test.ok)
			}
		})
	}
}
