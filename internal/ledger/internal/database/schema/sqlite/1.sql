-- The hash chains of the writers: the last link, and the last of those that were removed with all before them.
create table chains (
    id        integer primary key,
    seq       integer not null,
    hash      blob    not null,
    base_seq  integer not null,
    base_hash blob    not null
) strict;

-- Signed statements that a chain had a link.
create table checkpoints (
    chain     integer not null,
    seq       integer not null,
    hash      blob    not null,
    at        integer not null, -- in milliseconds
    key       blob    not null, -- the public one
    signature blob    not null,
    primary key (chain, seq)
) strict, without rowid;

-- The tenants that have calls here, and how much these take.
create table tenants (
    id    integer primary key,
    name  text    not null unique,
    calls integer not null,
    bytes integer not null
) strict;

-- The other texts by which calls are found.
create table names (
    id   integer primary key,
    kind integer not null,
    name text    not null,
    unique (kind, name)
) strict;

-- How often rows of tenants or names were removed: who remembers their ids then has to forget them.
create table removals (number integer not null) strict;
insert into removals (number) values (0);

-- The calls. Of one that was removed, only what its chain needs is left; the rest is null.
create table calls (
    id      integer primary key,
    chain   integer not null,
    seq     integer not null,
    call_id blob    not null,
    at      integer not null, -- when it ended, in milliseconds
    digest  blob    not null, -- of salt and content
    hash    blob    not null, -- of the link
    parent  blob,
    tenant  integer,
    tool    integer,
    person  integer,
    session integer,
    outcome integer,
    denied  integer,
    salt    blob,
    content text
) strict;

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

-- integerhe rows of calls between which those are that ended in a period of ten minutes, by chains.
create table periods (
    chain  integer not null,
    period integer not null,
    first  integer not null,
    last   integer not null,
    primary key (chain, period)
) strict, without rowid;

-- The words of calls, by calls.id. The text holds each word once, behind the id of the tenant. Characters beyond ASCII
-- are letters to "ascii".
create virtual table words using fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- Documents with names: tokens, and the agents of each tenant.
create table documents (
    kind    text  not null,
    tenant  text  not null,
    name    text  not null,
    content blob  not null,
    primary key (kind, tenant, name)
) strict;

-- The states of paused batches that were resumed, by digests of their keys, until no copy of them is accepted.
create table claims (
    key     blob    primary key,
    expires integer not null
) strict, without rowid;
create index claims_expires on claims (expires);

-- The processes that run calls, each until it says so again. The numbers are never used again.
create table writers (
    id    integer primary key, -- random
    until integer not null -- in milliseconds
) strict;

-- The calls that were about to run and have no record yet. If their writer is gone, it is unknown how they ended. The
-- content is the record that they get then.
create table intents (
    call_id blob primary key,
    writer  integer not null,
    content text not null
) strict, without rowid;
create index intents_writer on intents (writer);

-- The requests that may be repeated, by digests of their keys. The fence changes with whoever answers the request.
create table keys (
    key     blob primary key,
    tenant  text not null,
    body    blob not null, -- its digest
    until   integer not null, -- in milliseconds
    writer  integer not null,
    fence   integer not null,
    call_id blob, -- the first call with an effect that the request has made; null before
    bytes   integer not null, -- of the answer
    answer  blob -- null before
) strict, without rowid;
create index keys_tenant on keys (tenant, until, bytes);
create index keys_until on keys (until);

-- The runs of servers. Times are in milliseconds.
create table runs (
    id      text   primary key,
    tenant  text   not null,
    status  text   not null,
    over    integer not null, -- whether it stays in this status
    created integer not null,
    until   integer not null, -- when it is forgotten, or waits no longer; 0 while a writer works on it
    pending integer not null, -- how many answers it waits for
    session text   not null,
    version integer not null, -- of all the rest
    writer  integer, -- who works on it
    cancel  integer not null, -- whether the writer should cancel it
    bytes   integer not null,
    save    integer not null, -- what has made this version
    content text   not null
) strict;
create index runs_tenant on runs (tenant, created, id);
create index runs_until on runs (until);
create index runs_writer on runs (writer, cancel) where writer is not null;

-- The latest events of runs, in their order.
create table run_events (
    run  text   not null,
    id   integer not null,
    name text   not null,
    last integer not null, -- whether a response ends with it
    data text   not null,
    primary key (run, id)
) strict, without rowid;

-- Answers that were submitted since the content of a run was written.
create table run_answers (
    run     text    not null,
    version integer not null, -- of the run, which they have made
    data    text    not null,
    primary key (run, version)
) strict, without rowid;
