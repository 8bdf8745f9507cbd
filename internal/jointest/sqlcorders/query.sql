-- name: InsertOrder :exec
insert into public.orders (id) values ($1);
