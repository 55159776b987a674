import { rabbitmq } from '../history/brokers.js'
import { randomStreams } from './random-streams.js'

randomStreams(rabbitmq)
