import { KINDS } from './kinds.js'
import { lostEndSuite } from './lost-end.js'

lostEndSuite(KINDS['redis-cluster'])
