/** The table's name, in the first schema of the user's search path that has it, and the channel of its notices. */
export const TABLE = 'webmq_outbox'

/** Creates what is missing of the table and its trigger. Needs PostgreSQL 13. */
export const SCHEMA = `BEGIN;

CREATE TABLE IF NOT EXISTS ${TABLE} (
  -- The order. Do not give the sequence a CACHE: ids must grow in the order of the inserts.
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text NOT NULL,
  -- One of the two: JSON, or bytes. Not jsonb, which takes no \\u0000 and no half of a surrogate pair.
  payload json,
  bytes bytea,
  -- The message's id, by which a broker drops a second one.
  message_id uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Why it cannot be published. Set it to NULL to try again.
  error text,
  CONSTRAINT ${TABLE}_payload_or_bytes CHECK (num_nonnulls(payload, bytes) = 1)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX IF NOT EXISTS ${TABLE}_failed ON ${TABLE} (id) WHERE error IS NOT NULL;

-- Wakes the server at the commit. Without this trigger it looks at each interval of its option outbox.pollMs.
CREATE OR REPLACE FUNCTION ${TABLE}_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('${TABLE}', '');
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS ${TABLE}_notify ON ${TABLE};
CREATE TRIGGER ${TABLE}_notify AFTER INSERT ON ${TABLE} FOR EACH STATEMENT EXECUTE FUNCTION ${TABLE}_notify();

COMMIT;
`
