import { startRabbitmq } from 'webmq-services'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'
import { lostEndSuite } from './lost-end.js'

lostEndSuite({ name: 'rabbitmq', start: () => startRabbitmq({ isPrivate: true }), create: createRabbitmqBroker })
