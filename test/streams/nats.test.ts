import { nats } from '../history/brokers.js'
import { crowdOfReaders } from './crowd.js'
import { randomStreams } from './random-streams.js'

randomStreams(nats)
crowdOfReaders(nats)
