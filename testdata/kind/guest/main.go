// Command guest says what the time is.
package main

import "fmt"

//go:wasmimport caisson:clock@1 hour
func hour(zone string) int64

func main() {
	if h := hour("UTC"); h < 0 {
		fmt.Println(`{"success":false,"error":"the time in UTC is not known"}`)
	} else {
		fmt.Printf(`{"success":true,"data":{"hour":%d}}`+"\n", h)
	}
}
