package surface

import (
	"net/http"
	"net/url"
	"strconv"
)

// listTasks is GET {interface}/tasks: there are none to list.
func listTasks(w http.ResponseWriter, r *http.Request, _ Send) error {
	const usual, most = 50, 100
	size := usual
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Invalid("The query does not parse.")
	}
	if sizes, ok := query["pageSize"]; ok {
		if size, err = strconv.Atoi(sizes[0]); err != nil || len(sizes) > 1 || size < 1 || size > most {
			return Invalid("pageSize is a number from 1 to 100.")
		}
	}
	Write(w, http.StatusOK, []byte(`{"tasks":[],"nextPageToken":"","pageSize":`+strconv.Itoa(size)+`,"totalSize":0}`))
	return nil
}
