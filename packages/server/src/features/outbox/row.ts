import type { Feature } from '../feature.js'
import { flagged, namesOf } from '../observing/metrics/spec.js'
import type { DatabaseOutbox, OutboxStats, OutboxStatus } from './driver.js'

const STATUSES = namesOf<OutboxStatus>({ leading: true, waiting: true, down: true })

/** The node itself starts and stops it: it publishes until the last connection is closed. */
export const outbox = {
  metrics: {
    'webmq_outbox_status{status}': [
      '1 for the status of the database outbox: leading (this node publishes its rows), waiting (another does), down (no database, or rows that it hides); absent without one.',
      ({ status }) => flagged(STATUSES, status),
    ],
    webmq_outbox_rows:
      'rowCount: Rows that wait to be published, at most 100,000; with those that follow, of the leading node alone.',
    webmq_outbox_lag_seconds: 'lagSeconds: Age of the oldest of them.',
    webmq_outbox_failed_rows: 'failedRowCount: Rows with an error, which are not published, at most 100,000.',
    webmq_outbox_published_total: 'publishedCount: Rows that this node has published.',
    webmq_outbox_duplicates_total: 'duplicateCount: Of these, those that the broker had from another node.',
    webmq_outbox_failed_total: 'failedCount: Rows that this node has given an error.',
    webmq_outbox_lost_total: 'lostCount: Lost connections to the database.',
  },
  open: (outbox: DatabaseOutbox) => ({ stats: () => outbox.stats() }),
} satisfies Feature<DatabaseOutbox, OutboxStats>
