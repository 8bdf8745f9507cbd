-- +goose Up
create table shop.item (id bigint generated always as identity primary key, name text not null unique);
