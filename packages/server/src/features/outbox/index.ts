// What the outbox of a database is written against: `webmq-server/outbox`.

// The contract.

export * from './driver.js'

// What it shares with the server.

export { LogPace } from '../../kernel/base/log-pace.js'
export { reasonOf } from '../../kernel/base/reason.js'
export { within } from '../../kernel/base/within.js'
export { secretHider } from '../../kernel/ports/broker-address.js'
