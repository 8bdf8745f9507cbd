module good.example

go 1.26
