import { withoutPasswords } from '../../../kernel/ports/broker-address.js'
import { integer, text } from '../spec.js'
import { GIB, MIB } from './checks.js'

export const OUTBOX_OPTIONS = {
  'outbox.url': text({
    flag: 'outbox',
    placeholder: 'address',
    fromFile: 'file-flag',
    shown: withoutPasswords,
    check: (value) =>
      /^postgres(ql)?:\/\/./.test(value) && URL.canParse(value) ? undefined : 'an address: postgres://…',
    help: 'PostgreSQL with the table `webmq_outbox`, whose messages are published when their transaction commits; default none.',
    detail:
      'Give it to all nodes: one of them publishes, another takes over when it ends. `webmq-server outbox schema` prints the table. It must reach PostgreSQL itself, not a pooler that shares sessions. Another machine needs `sslmode=verify-full` in the address, or `insecure`, because an attacker on the network could insert messages. [database-outbox.md](database-outbox.md) has the rules.',
  }),
  'outbox.pollMs': integer({
    range: [10, 10_000],
    default: 1000,
    help: 'Interval at which the table is read without a notice, and at which the other nodes try to take over.',
    detail: 'A row whose notice was lost waits for this interval.',
  }),
  'outbox.maxBatchRows': integer({
    range: [1, 10_000],
    default: 500,
    help: 'Most rows that are read and published at once.',
    detail: 'The node that takes over after a crash publishes at most as many a second time, for the broker to drop.',
  }),
  'outbox.maxBatchBytes': integer({
    range: [1024, GIB],
    default: 4 * MIB,
    help: 'Most bytes of payloads that are read and published at once; one row is always read.',
    detail: 'They should fit into `brokerMaxPendingBytes`.',
  }),
}
