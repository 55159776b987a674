// What a broker of your own is written against: `webmq-server/brokers`. A driver makes links, and `RemoteBroker` makes a
// broker of it: order, recovery, history and duplicates. `webmq-server/ports` has the contract of the broker as a whole.

// The contract.

export * from './remote/link.js'

// What brokers share.

export { type Deferred, deferred } from '../../kernel/base/deferred.js'
export { limitedSignal } from '../../kernel/base/limited-signal.js'
export { isJson } from '../../kernel/base/parse-json.js'
export { reasonOf } from '../../kernel/base/reason.js'
export { Router } from '../../kernel/patterns/router.js'
export { LogRestart } from '../../kernel/ports/broker.js'
export { secretHider, withoutPasswords } from '../../kernel/ports/broker-address.js'
export { isReserved } from '../../kernel/ports/reserved-keys.js'
export { PublishIds } from './dedupe/publish-ids.js'
export { epochOfText, newEpoch } from './log/epoch.js'
export {
  fingerprintOfForeign,
  fingerprintOfPlace,
  fingerprintOfSource,
  fingerprintOfText,
  fingerprintOfTime,
} from './log/fingerprint.js'
export { hasHistory } from './log/history-log.js'
export { OwnLog } from './log/own-log.js'
export { RemoteBroker } from './remote/broker.js'
export { SubscriptionCover, type SubscriptionCoverOptions } from './remote/cover.js'
export { decodeEnvelope, encodeEnvelope, logged, PUBLISHER_BYTES } from './remote/envelope.js'
export { EPHEMERAL_KEY } from './remote/ephemeral.js'
export { Liveness } from './remote/liveness.js'
export { OpenedSockets } from './remote/opened-sockets.js'
export { type AddressedBrokerOptions, capabilitiesOf, type RemoteBrokerOptions } from './remote/options.js'
export { readTlsFiles } from './remote/tls-files.js'
