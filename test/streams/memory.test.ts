import { memory } from '../history/brokers.js'
import { randomStreams } from './random-streams.js'

randomStreams(memory)
