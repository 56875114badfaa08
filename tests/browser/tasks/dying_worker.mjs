// A worker that ends itself in the midst of an answer, of which no browser tells the page.
import '/build/package/dist/worker.js';

let steps = 0;
self.addEventListener('message', ({ data }) => {
  if (data.method === 'step' && ++steps === 10) self.close();
});
