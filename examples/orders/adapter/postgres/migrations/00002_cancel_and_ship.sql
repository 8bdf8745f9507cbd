-- +goose Up
alter table orders."order" drop constraint order_status_check;
alter table orders."order" add constraint order_status_check check (status in ('placed', 'cancelled'));

create table orders.shipment (
  order_id   uuid        primary key references orders."order" (id),
  id         uuid        not null unique,
  created_at timestamptz not null default transaction_timestamp()
);
