-- +goose Up
create table orders.product (
  sku         text   primary key,
  price_cents bigint not null check (price_cents >= 0)
);

insert into orders.product (sku, price_cents) values ('tea', 450), ('coffee', 650), ('mug', 1200);

create table orders."order" (
  id          uuid        primary key,
  status      text        not null check (status in ('placed')),
  customer_id text        not null,
  total_cents bigint      not null check (total_cents >= 0),
  version     bigint      not null,
  created_at  timestamptz not null default transaction_timestamp()
);

create table orders.order_item (
  order_id uuid not null references orders."order" (id),
  line     int  not null check (line > 0),
  sku      text not null references orders.product (sku),
  quantity int  not null check (quantity > 0),
  primary key (order_id, line)
);
