create table public.orders (id text primary key);
