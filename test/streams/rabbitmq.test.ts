import { rabbitmq } from '../history/brokers.js'
import { crowdOfReaders } from './crowd.js'
import { randomStreams } from './random-streams.js'

randomStreams(rabbitmq)
crowdOfReaders(rabbitmq)
