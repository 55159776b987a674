import type { BrokerCosts, Coefficients } from './coefficients.js'

const broker: BrokerCosts = {
  publisherUs: 20,
  publisherLoggedUs: 30,
  listenerUs: 10,
  listenerLoggedUs: 15,
  brokerUs: 5,
  brokerCopyUs: 2,
  brokerLoggedUs: 10,
  brokerLoggedCopyUs: 4,
  publishBytes: 50,
  copyBytes: 40,
  publishLoggedBytes: 100,
  copyLoggedBytes: 60,
  hopP50Ms: 0.5,
  hopP99Ms: 2,
}

/** Round costs for calculations by hand. */
export const ROUND_COSTS: Coefficients = {
  command: 'node benchmark.js --scenario costs',
  machine: {
    cpuModel: 'A processor',
    cores: 2,
    kernel: 'Linux',
    nodeVersion: 'v20.0.0',
    loadAverage: 0,
    gitCommit: null,
    startedAt: '2026-01-01T00:00:00.000Z',
  },
  node: {
    baseBytes: 100e6,
    connectionBytes: 1_200,
    idleCores: 0.01,
    keepaliveUs: 10,
    connectUs: 50,
    publishUs: 20,
    clientPublishUs: 20,
    writeUs: 4,
    frameUs: 0.1,
    byteNs: 1,
    frameBytes: 30,
    generatorReadUs: 2,
    generatorFrameUs: 0.1,
  },
  brokers: { redis: broker, nats: broker, rabbitmq: { ...broker, brokerUs: 50, brokerLoggedUs: 60 } },
  residuals: { 'a fit': 0.05 },
}
