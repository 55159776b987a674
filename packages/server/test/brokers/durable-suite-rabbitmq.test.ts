import { suiteOfNodes } from '../durable-streams/suite-nodes.js'

suiteOfNodes('rabbitmq')
