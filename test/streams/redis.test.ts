import { redis } from '../history/brokers.js'
import { randomStreams } from './random-streams.js'

randomStreams(redis)
