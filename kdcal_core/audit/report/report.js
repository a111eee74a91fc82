"use strict";
for (const place of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(document.getElementById(place.id + "-figure").textContent);
  Plotly.newPlot(place, figure.data, figure.layout, {
    displayModeBar: false,
    displaylogo: false,
    showSendToCloud: false,
    showLink: false,
    doubleClick: false,
    responsive: true,
  });
}
