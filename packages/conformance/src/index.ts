export { itWhere } from './applies.js'
export type { BrokerSystem, CreateBrokerSystem } from './broker/harness.js'
export { historyOf, retaining } from './broker/history-of.js'
export { ListeningNode } from './broker/listening-node.js'
export { messageIdOf } from './broker/message-id-of.js'
export { brokerOptions, type CommonBrokerOptions } from './broker/options.js'
export { type BrokerBehindSystem, brokerBehindSuite } from './broker-behind-suite.js'
export {
  type BrokerFault,
  type BrokerFaultOptions,
  type BrokerFaultSystem,
  brokerFaultSuite,
} from './broker-fault-suite.js'
export { brokerSuite } from './broker-suite.js'
export { FakeClient, type FakeClosure } from './fake-client.js'
export { FakeTransport } from './fake-transport.js'
export type { FakeUpgrade } from './fake-upgrade.js'
export { eventually } from './transport/eventually.js'
export { clientFrame, closeFrame, OPCODE } from './transport/frames.js'
export { DEFAULT_OPTIONS, group } from './transport/harness.js'
export { handshakeHead, RawClient } from './transport/raw-client.js'
export { RecordingSink } from './transport/recording-sink.js'
export { SseClient } from './transport/sse-client.js'
export { WebSocketClient } from './transport/web-socket-client.js'
export {
  type CertificatePem,
  type CreateTransport,
  type MakeCertificate,
  type TransportExpectations,
  type TransportTraits,
  transportSuite,
} from './transport-suite.js'
