-- TPC-B's quarrel over the branch: whoever changes its row holds it until the commit, and the
-- application takes 5 ms in between (a round trip of its own). B branches end at most B / 5 ms
-- transactions per second, whatever the processors do.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
SELECT pg_sleep(0.005);
END;
