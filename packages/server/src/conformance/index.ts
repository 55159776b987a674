export {
  type BrokerFault,
  type BrokerFaultOptions,
  type BrokerFaultSystem,
  brokerFaultSuite,
} from './broker-fault-suite.js'
export { type BrokerSystem, brokerSuite, type CreateBrokerSystem } from './broker-suite.js'
export { FakeClient, type FakeClosure } from './fake-client.js'
export { FakeTransport, type FakeUpgrade } from './fake-transport.js'
export {
  type CreateTransport,
  type TransportExpectations,
  type TransportTraits,
  transportSuite,
} from './transport-suite.js'
