-- +goose Up
alter table orders."order" drop constraint order_status_check;
alter table orders."order" add constraint order_status_check check (status in ('placed', 'cancelled', 'expired'));

-- What is still to be shipped is few, however many orders there are: those that may expire are found among them.
alter table orders."order" add column shipped boolean not null default false;
update orders."order" o set shipped = true where exists (select from orders.shipment s where s.order_id = o.id);
create index order_to_ship on orders."order" (created_at) where status = 'placed' and not shipped;
