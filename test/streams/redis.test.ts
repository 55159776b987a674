import { redis } from '../history/brokers.js'
import { crowdOfReaders } from './crowd.js'
import { randomStreams } from './random-streams.js'

randomStreams(redis)
crowdOfReaders(redis)
