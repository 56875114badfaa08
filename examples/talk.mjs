// Asks a model one question in Node:   node examples/talk.mjs build/models/smollm2-135m-q4 'What is the capital of France?'
import { loadModel } from '../js/index.js'; // in a project of its own: 'krafla-web'

const [source, question] = process.argv.slice(2);
const model = await loadModel(source);
const chat = model.chat({ system: 'Answer in one sentence.' });
for await (const piece of chat.send(question, { maxTokens: 60 })) process.stdout.write(piece);
process.stdout.write('\n');
await model.close();
