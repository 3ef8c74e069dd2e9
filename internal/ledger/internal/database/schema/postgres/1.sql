-- The hash chains of the writers: the last link, and the last of those that were removed with all before them.
create table chains (
    id        bigint primary key,
    seq       bigint not null,
    hash      bytea   not null,
    base_seq  bigint not null,
    base_hash bytea   not null
);

-- Signed statements that a chain had a link.
create table checkpoints (
    chain     bigint not null,
    seq       bigint not null,
    hash      bytea   not null,
    at        bigint not null, -- in milliseconds
    key       bytea   not null, -- the public one
    signature bytea   not null,
    primary key (chain, seq)
);

-- The tenants that have calls here, and how much these take.
create table tenants (
    id    bigint generated always as identity primary key,
    name  text    not null unique,
    calls bigint not null,
    bytes bigint not null
);

-- The other texts by which calls are found.
create table names (
    id   bigint generated always as identity primary key,
    kind bigint not null,
    name text    not null,
    unique (kind, name)
);

-- How often rows of tenants or names were removed: who remembers their ids then has to forget them.
create table removals (number bigint not null);
insert into removals (number) values (0);

-- The calls. Of one that was removed, only what its chain needs is left; the rest is null.
create table calls (
    id      bigint generated always as identity primary key,
    chain   bigint not null,
    seq     bigint not null,
    call_id bytea   not null,
    at      bigint not null, -- when it ended, in milliseconds
    digest  bytea   not null, -- of salt and content
    hash    bytea   not null, -- of the link
    parent  bytea,
    tenant  bigint,
    tool    bigint,
    person  bigint,
    session bigint,
    outcome bigint,
    denied  bigint,
    salt    bytea,
    content text
);

create unique index calls_link on calls (chain, seq);
create unique index calls_id on calls (call_id);
create index calls_parent on calls (parent, call_id) where parent is not null;
-- Each of these holds all that can be asked for, so that what does not match is passed over without its row. All begin
-- with the tenant, whose searches must not take longer the more calls others make.
create index calls_tenant on calls (tenant, at, id, tool, person, session, outcome, denied) where tenant is not null;
create index calls_tool on calls (tenant, tool, at, id, person, session, outcome, denied) where tool is not null;
create index calls_person on calls (tenant, person, at, id, tool, session, outcome, denied) where person is not null;
create index calls_session on calls (tenant, session, at, id, tool, person, outcome, denied) where session is not null;
create index calls_outcome on calls (tenant, outcome, at, id, tool, person, session, denied) where outcome is not null;
create index calls_denied on calls (tenant, at, id, tool, person, session, outcome, denied) where denied = 1;

-- biginthe rows of calls between which those are that ended in a period of ten minutes, by chains.
create table periods (
    chain  bigint not null,
    period bigint not null,
    first  bigint not null,
    last   bigint not null,
    primary key (chain, period)
);

-- The words of a call, each once, behind the id of the tenant.
alter table calls add column words tsvector;
create index calls_words on calls using gin (words) where words is not null;

-- Documents with names: tokens, and the agents of each tenant.
create table documents (
    kind    text  not null,
    tenant  text  not null,
    name    text  not null,
    content bytea not null,
    primary key (kind, tenant, name)
);

-- The states of paused batches that were resumed, by digests of their keys, until no copy of them is accepted.
create table claims (
    key     bytea  primary key,
    expires bigint not null
);
create index claims_expires on claims (expires);

-- The processes that run calls, each until it says so again. The numbers are never used again.
create table writers (
    id    bigint primary key, -- random
    until bigint not null -- in milliseconds
);

-- The calls that were about to run and have no record yet. If their writer is gone, it is unknown how they ended. The
-- content is the record that they get then.
create table intents (
    call_id bytea primary key,
    writer  bigint not null,
    content text not null
);
create index intents_writer on intents (writer);

-- The requests that may be repeated, by digests of their keys. The fence changes with whoever answers the request.
create table keys (
    key     bytea primary key,
    tenant  text not null,
    body    bytea not null, -- its digest
    until   bigint not null, -- in milliseconds
    writer  bigint not null,
    fence   bigint not null,
    call_id bytea, -- the first call with an effect that the request has made; null before
    bytes   bigint not null, -- of the answer
    answer  bytea -- null before
);
create index keys_tenant on keys (tenant, until, bytes);
create index keys_until on keys (until);

-- The runs of servers. Times are in milliseconds.
create table runs (
    id      text   primary key,
    tenant  text   not null,
    status  text   not null,
    over    bigint not null, -- whether it stays in this status
    created bigint not null,
    until   bigint not null, -- when it is forgotten, or waits no longer; 0 while a writer works on it
    pending bigint not null, -- how many answers it waits for
    session text   not null,
    version bigint not null, -- of all the rest
    writer  bigint, -- who works on it
    cancel  bigint not null, -- whether the writer should cancel it
    bytes   bigint not null,
    save    bigint not null, -- what has made this version
    content text   not null
);
create index runs_tenant on runs (tenant, created, id);
create index runs_until on runs (until);
create index runs_writer on runs (writer, cancel) where writer is not null;

-- The latest events of runs, in their order.
create table run_events (
    run  text   not null,
    id   bigint not null,
    name text   not null,
    last bigint not null, -- whether a response ends with it
    data text   not null,
    primary key (run, id)
);

-- Answers that were submitted since the content of a run was written.
create table run_answers (
    run     text   not null,
    version bigint not null, -- of the run, which they have made
    data    text   not null,
    primary key (run, version)
);
