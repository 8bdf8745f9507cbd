module bad.example

go 1.26
