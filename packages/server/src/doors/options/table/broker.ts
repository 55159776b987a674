import { brokerNameOf, describeAllowedBroker, withoutPasswords } from '../../../kernel/ports/broker-address.js'
import { MESH_DEFAULT_LISTEN, parseHostAndPort } from '../mesh-address.js'
import { integer, text } from '../spec.js'
import { GIB, longEnough, MAX_TIMER_MS, MIB } from './checks.js'

export const BROKER_OPTIONS = {
  broker: text({
    reloadable: true,
    placeholder: 'address',
    default: 'memory',
    fromFile: 'file-flag',
    shown: withoutPasswords,
    check: (value) => (brokerNameOf(value) === undefined ? describeAllowedBroker() : undefined),
    help: 'Broker between the nodes: `memory`, `amqp://…`, `redis://…` (also Valkey), `nats://…` or `mesh://…`.',
    detail:
      '`memory` is embedded: it needs no installation, serves one node, and loses its history at exit. [docs/brokers.md](brokers.md) helps you choose. A reload changes the user and the password alone. The password is never printed or logged. `createServer` also accepts an object that implements the `Broker` port.',
  }),
  brokerNamespace: text({
    placeholder: 'name',
    default: 'webmq',
    check: (value) => (/^[A-Za-z0-9_-]{1,64}$/.test(value) ? undefined : '1 to 64 characters of A-Z a-z 0-9 _ -'),
    help: 'Name that all nodes of one system share at the broker.',
    detail:
      'It is the name of the exchange (RabbitMQ), the first word of channels (Redis) and subjects (NATS), and must be equal on all nodes of a mesh.',
  }),
  brokerTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 5000,
    help: 'Time that a publish or a listen waits for the broker, outages included; then `E_BROKER_UNAVAILABLE`.',
  }),
  brokerStartTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 30_000,
    help: 'Time that a starting server tries to reach the broker before it gives up.',
    detail: 'If the broker refuses the server, the start fails at once.',
  }),
  brokerHeartbeatMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 5000,
    help: 'Interval of heartbeats to the broker; a connection that is silent for two intervals counts as lost.',
    detail: 'Detects connections that look healthy and deliver nothing.',
  }),
  brokerMaxPendingBytes: integer({
    range: [1024, 64 * GIB],
    default: 64 * MIB,
    help: 'Bytes of messages that may wait for the broker; further ones are refused with `E_BROKER_UNAVAILABLE`.',
    detail:
      'One connection may use an eighth of it (at least one message of the largest size), and a user, or an address of anonymous clients, a quarter.',
  }),
  'mesh.listen': text({
    placeholder: 'host:port',
    default: MESH_DEFAULT_LISTEN,
    check: (value) => (parseHostAndPort(value) === undefined ? 'a host with a port, as in 10.0.0.1:7400' : undefined),
    help: 'Address at which the other nodes of a mesh reach this node; port `0` picks a free one.',
    detail:
      'For `--broker mesh://…`. The default accepts nodes on this machine only. Links are not encrypted, so use a private network.',
  }),
  'mesh.secret': text({
    placeholder: 'secret',
    isSecret: true,
    fromFile: 'file-flag',
    check: longEnough,
    help: 'Secret that all nodes of a mesh share; use 32 bytes or more.',
    detail:
      'Required unless all nodes are on this machine, because a linked node may publish and receive everything. The secret is never sent; both sides prove that they know it. `openssl rand -base64 32` creates a secret. Fewer than 16 bytes are refused.',
  }),
}
